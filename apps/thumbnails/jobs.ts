// The module that `redrive work` and `redrive serve` run: the job, and its setup, from the environment.
import { createThumbnailApp } from './thumbnail-app.js'

export const { thumbnail, setup } = createThumbnailApp(process.env)
