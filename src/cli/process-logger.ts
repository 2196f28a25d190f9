// The log of a process that works or serves: as LOG_LEVEL says, on stderr.
import { readSettings } from '../settings.js'
import { defaultLogger } from '../telemetry/default-logger.js'
import type { Logger } from '../telemetry/log.js'
import type { Host } from './cli.js'

export const loggerFor = ({ env, clock, stderr }: Host): Logger =>
  defaultLogger(readSettings(env).logLevel, clock, stderr)
