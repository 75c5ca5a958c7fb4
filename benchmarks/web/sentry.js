// A message with one tag, sent at once, as Sentry's own documentation does.
import { captureMessage, init } from "@sentry/browser";

export function send(address) {
  init({ dsn: `https://key@${new URL(address).host}/1` });
  captureMessage("theme", { tags: { theme: "dark" } });
}
