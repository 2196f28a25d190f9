// What has to be undone at the end.
export type Ending = () => unknown

/** All of them, last one first, whatever one says; the first that failed is told. */
export async function endAll(endings: Ending[]): Promise<void> {
  const failed: unknown[] = []
  for (const end of endings.splice(0).reverse()) {
    try {
      await end()
    } catch (error) {
      failed.push(error)
    }
  }
  if (failed.length > 0) throw failed[0]
}
