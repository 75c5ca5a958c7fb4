/**
 * Bounds: whatever may never answer is waited for by `within`.
 *
 * That is the network, storage, locks, functions of the app and parts that are loaded. What is awaited
 * without a bound is computed here: by JavaScript, or by the platform's cryptography.
 */

/**
 * What some work comes to; `late()` is thrown if the signal is aborted first. What the work comes to
 * after that is dropped.
 */
export function within<T>(
  signal: AbortSignal,
  work: Promise<T>,
  late: () => unknown = () => signal.reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an Error, of the caller
      reject(late());
    };
    if (signal.aborted) end();
    signal.addEventListener("abort", end);
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener("abort", end);
    });
  });
}

/** Does some work after so many seconds; in Node the timer keeps no program alive. */
export function later(seconds: number, work: () => void): ReturnType<typeof setTimeout> {
  const timer = setTimeout(work, 1000 * seconds);
  if (typeof timer === "object" && "unref" in timer) (timer as { unref(): void }).unref();
  return timer;
}

/** A signal that is aborted after so many seconds. In Node its timer keeps no program alive. */
export function after(seconds: number): AbortSignal {
  return AbortSignal.timeout(Math.ceil(1000 * seconds));
}
