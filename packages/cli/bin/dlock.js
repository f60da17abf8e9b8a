#!/usr/bin/env node
import process from 'node:process'

let main
try {
  ;({ main } = await import('../dist/index.js'))
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  console.error('dlock is not built yet: run "npm start" or "npm run build" first')
  process.exit(125)
}
process.exitCode = await main()
