// Package session is what the verbs that read have in common: the flags that say which objects are read and
// where (ServerFlags, ReadFlags, ConfigFlags), the server or the files behind them (Target), what names of
// types stand for there, and the caches that hold the objects (Reader, Caches).
package session
