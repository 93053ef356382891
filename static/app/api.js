// Asking our own server. Every refusal arrives as {"error": {"code", "message"}} and leaves here as an ApiError.

export class ApiError extends Error {
  /**
   * @param {string} code kebab-case
   * @param {string} message one sentence for people
   * @param {number} status HTTP status; 0 when the server was not reached
   * @param {number} [retryAfter_s]
   */
  constructor(code, message, status, retryAfter_s) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
    this.retryAfter_s = retryAfter_s;
  }
}

export const unreachable = () => new ApiError("unreachable", "The playground's server does not answer: start it, then try again.", 0);

/**
 * fetch that turns every kind of failure into an ApiError (an abort stays an AbortError).
 * @param {string} address
 * @param {RequestInit} [options]
 */
export async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  let said;
  try {
    said = (await response.json()).error;
  } catch {
    said = null; // not our envelope: a proxy, perhaps
  }
  const wait = Number(response.headers.get("Retry-After")) || undefined;
  throw new ApiError(said?.code ?? "http", said?.message ?? `The server answered ${response.status}.`, response.status, wait);
}

/**
 * A model's file that must be JSON.
 * @param {string} address
 * @returns {Promise<any>} parsed
 */
export async function askJson(address) {
  const response = await ask(address);
  try {
    return await response.json();
  } catch {
    const name = new URL(address, location.href).pathname.split("/").at(-1);
    throw new ApiError("broken-file", `${name} is not JSON, so it is damaged: fetch the model again with \`playground pull\`.`, 200);
  }
}

/** @returns {Promise<{default: string | null, models: import("./state.js").ModelEntry[]}>} */
export async function listModels() {
  return (await ask("/api/models")).json();
}

/** @returns {Promise<{oracle: {state: "ready" | "installing" | "absent" | "failed", detail: string, progress: number | null}}>} */
export async function serverStatus() {
  return (await ask("/api/status")).json();
}

/**
 * A trace by the PyTorch oracle on the server.
 * @param {{model: string, ids: ArrayLike<number>, include: string[], layers?: number[] | null, positions?: number[] | null}} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<Uint8Array<ArrayBuffer>>} a safetensors file
 */
export async function oracleTrace({ ids, layers = null, positions = null, ...rest }, signal) {
  const body = JSON.stringify({ ...rest, ids: Array.from(ids), layers, positions });
  for (;;) {
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await ask("/api/oracle/trace", { method: "POST", headers, body, signal });
      return new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 503 || !error.retryAfter_s) throw error;
      await pause(error.retryAfter_s * 1000, signal);
    }
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>} rejects with the signal's reason when it is aborted
 */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
