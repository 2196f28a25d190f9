// What `npm run build` and `npm start` leave in dist/.
import { access, constants } from 'node:fs/promises'
import { expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

it('the command can be run as it lies there, after every build', async () => {
  const command = new URL(`../../${manifest.bin.redrive}`, import.meta.url)
  await expect(access(command, constants.X_OK)).resolves.toBeUndefined()
})
