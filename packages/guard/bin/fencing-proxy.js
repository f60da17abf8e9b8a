#!/usr/bin/env node
import process from 'node:process'
import pg from 'pg'
import { startFencingProxy } from '../dist/program.js'

try {
  const proxy = await startFencingProxy({
    argv: process.argv.slice(2),
    env: process.env,
    openPool: (url) => {
      const pool = new pg.Pool({
        connectionString: url,
        connectionTimeoutMillis: 3_000,
        query_timeout: 5_000,
      })
      // A pooled connection that breaks while idle is replaced; the next query says more.
      pool.on('error', () => undefined)
      return pool
    },
    log: (line) => console.log(line),
  })
  console.log(JSON.stringify({ service: 'fencing-proxy', event: 'listening', url: proxy.url }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void proxy.close())
} catch (error) {
  console.error(error.message)
  process.exitCode = process.argv.includes('--help') ? 0 : 2
}
