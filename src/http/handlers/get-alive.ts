/** This process answers: nothing else is said to whoever has no token. */
export const getAlive = async () => ({ status: 'ok' as const })
