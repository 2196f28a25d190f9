// The Postgres transport on a server.
import { postgresHarness } from './postgres.js'
import { transportConformance } from './transport.js'

transportConformance('Postgres server', postgresHarness('server'))
