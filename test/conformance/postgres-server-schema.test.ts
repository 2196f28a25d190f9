// The Postgres transport on a server, in a schema of another name.
import { postgresHarness } from './postgres.js'
import { transportConformance } from './transport.js'

transportConformance('Postgres server, schema of another name', postgresHarness('server-schema'))
