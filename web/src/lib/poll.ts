/**
 * Do something again and again while a component is there and somebody looks.
 *
 *     $effect(() => poll(2000, () => rows.reload()));
 *
 * The next pause begins when the last call has ended, so a slow broker is not asked
 * more and more; nothing is asked while the tab is hidden. The first call comes after
 * the first pause.
 */
export function poll(ms: number, act: () => Promise<unknown>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running = false;
  let ended = false;

  async function turn(): Promise<void> {
    running = true;
    try {
      await act();
    } catch {
      // Whoever asks says what was wrong; here it is only asked again.
    }
    running = false;
    wait();
  }
  function wait(): void {
    clearTimeout(timer);
    if (!ended && !document.hidden) timer = setTimeout(() => void turn(), ms);
  }
  function seen(): void {
    if (!document.hidden && !running) wait();
  }

  document.addEventListener("visibilitychange", seen);
  wait();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
