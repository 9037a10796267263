// Package session provides the parts that all reading verbs share: flags for the selection and source of
// objects (ServerFlags, ReadFlags, ConfigFlags), the API server or files behind them (Target), the resolution
// of type names, and caches of the objects (Reader, Caches).
package session
