// The module that `redrive work` and `redrive serve` run: the job, its setup, and what carries it, from the environment.
// PROVIDER_MODULES names the modules that register providers.
import { transportsOf } from './carrier.js'
import { createProviderApp } from './provider-app.js'

const app = createProviderApp(process.env)

export const { providerOperation, setup } = app
export const transports = await transportsOf(app.settings)
