/** Failure is an error response. */
export class Failure extends Error {
  constructor(status, body) {
    super(body.error ?? `HTTP status ${status}`);
    Object.assign(this, {status, offset: body.offset ?? 0, length: body.length ?? 0});
  }
}

/** reason explains a failed request. */
export const reason = (error) => (error.status ? error.message : "crdcache does not answer");

/** get sends a request. It omits empty parameters, and repeats parameters with lists. */
export async function get(endpoint, parameters, signal) {
  const response = await fetch(address(endpoint, parameters), {signal, headers: {Accept: "application/json"}});
  if (!response.ok) throw new Failure(response.status, await response.json().catch(() => ({})));
  return response.json();
}

export function address(endpoint, parameters) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (Array.isArray(value)) for (const each of value) query.append(key, each);
  else if (value !== undefined && value !== null && value !== "" && value !== false) query.set(key, value === true ? "1" : value);
  return `api/${endpoint}?${query}`;
}

/** Latest runs one request at a time. A newer request cancels the previous one, which then returns undefined. */
export class Latest {
  async get(endpoint, parameters) {
    this.stop();
    const controller = (this.controller = new AbortController());
    try {
      return await get(endpoint, parameters, controller.signal);
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    }
  }

  stop() {this.controller?.abort();}
}
