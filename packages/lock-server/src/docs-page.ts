import type { OpenApiDocument, OpenApiOperation } from './openapi.ts'

/**
 * The OpenAPI document as a page to read: every operation with what it takes and answers. Plain
 * HTML without script, so that it needs no network, no build and no viewer.
 */
export function docsPage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => section(method, path, operation)),
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>dlock HTTP API</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  code, pre { font: 14px/1.5 ui-monospace, monospace }
  pre { background: #f4f4f6; padding: .75rem; overflow: auto; max-height: 24rem }
  section { border-top: 1px solid #ddd; margin-top: 1.5rem }
  h2 small { font-weight: normal; color: #666 }
</style>
<h1>dlock HTTP API</h1>
<p>The same as <a href="/openapi.json">openapi.json</a>, to read. Tokens are decimal strings, times
are for people, and every answer that is not 2xx is an <code>ErrorEnvelope</code>.</p>
${operations.join('\n')}
${schema('ErrorEnvelope', document.components)}
</html>
`
}

function section(method: string, path: string, operation: OpenApiOperation): string {
  const { summary, parameters, requestBody, responses } = operation
  return `<section id="${operation.operationId}">
<h2><code>${escaped(`${method.toUpperCase()} ${path}`)}</code></h2>
<p>${escaped(summary)}</p>
${parameters === undefined || parameters.length === 0 ? '' : schema('Parameters', parameters)}
${requestBody === undefined ? '' : schema('Body', requestBody)}
${schema('Answers', responses)}
</section>`
}

function schema(title: string, value: object): string {
  const text = escaped(JSON.stringify(value, undefined, 2))
  return `<details><summary>${title}</summary><pre>${text}</pre></details>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
