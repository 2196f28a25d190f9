// The Postgres transport on the embedded database, on disk.
import { EMBEDDED_SKIPS, postgresHarness } from './postgres.js'
import { transportConformance } from './transport.js'

transportConformance('Postgres, embedded, on disk', postgresHarness('disk'), EMBEDDED_SKIPS)
