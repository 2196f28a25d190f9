// The Postgres transport on the embedded database, in memory.
import { EMBEDDED_SKIPS, postgresHarness } from './postgres.js'
import { transportConformance } from './transport.js'

transportConformance('Postgres, embedded, in memory', postgresHarness('memory'), EMBEDDED_SKIPS)
