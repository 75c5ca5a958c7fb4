/**
 * Time limits: `within` waits for anything that may never answer.
 *
 * That is the network, storage, locks, functions of the app, and parts that are loaded on demand.
 * Only computations, in JavaScript or in the platform's cryptography, are awaited without a limit.
 */

/**
 * The result of some work. If the signal is aborted first, `late()` is thrown and the result is
 * dropped.
 */
export function within<T>(
  signal: AbortSignal,
  work: Promise<T>,
  onTimeout: () => unknown = () => signal.reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an Error
      reject(onTimeout());
    };
    if (signal.aborted) end();
    signal.addEventListener("abort", end);
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener("abort", end);
    });
  });
}

/** Does some work after a number of seconds; in Node the timer keeps no program alive. */
export function callLater(seconds: number, work: () => void): ReturnType<typeof setTimeout> {
  const timer = setTimeout(work, 1000 * seconds);
  if (typeof timer === "object" && "unref" in timer) (timer as { unref(): void }).unref();
  return timer;
}

/** A signal that is aborted after a number of seconds. In Node its timer keeps no program alive. */
export function after(seconds: number): AbortSignal {
  if ("timeout" in AbortSignal) return AbortSignal.timeout(Math.ceil(1000 * seconds));
  const limit = new AbortController(); // Safari before 16
  callLater(seconds, () => {
    limit.abort(new DOMException("", "TimeoutError"));
  });
  return limit.signal;
}
