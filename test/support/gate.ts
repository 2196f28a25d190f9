// A promise that a test opens by hand: what waits for it goes on exactly when the story says so.
export interface Gate<T> {
  readonly passed: Promise<T>
  open(value: T): void
  refuse(error: unknown): void
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {}
  let refuse: (error: unknown) => void = () => {}
  const passed = new Promise<T>((resolve, reject) => {
    open = resolve
    refuse = reject
  })
  return { passed, open, refuse }
}
