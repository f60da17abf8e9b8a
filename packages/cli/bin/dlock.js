#!/usr/bin/env node
console.log('hi from cli', process.argv.slice(2))
