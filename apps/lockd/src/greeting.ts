const USUAL_URL = 'http://127.0.0.1:7400'

/** What a person sees first: where it is, and what to type next. */
export function greeting(url: string, keptIn: string): string {
  const where = url === USUAL_URL ? '' : ` --url ${url}`
  return `
  dlock is ready at ${url}
  The locks are kept in ${keptIn}

  Try it, from another terminal in this folder:

    npx dlock run${where} --key demo -- sleep 5
    npx dlock ls${where}

  or from anywhere, over HTTP (${url}/docs has the rest):

    curl -s ${url}/v1/sessions -H 'X-Owner-Id: me' -H 'Content-Type: application/json' -d '{"ownerId":"me"}'
    curl -s ${url}/v1/locks/demo

  Ctrl-C stops it.

`
}
