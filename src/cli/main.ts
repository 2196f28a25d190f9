#!/usr/bin/env node
// The `redrive` command.
import { runProcess } from './process.js'

await runProcess(process.argv.slice(2))
