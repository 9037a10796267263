// Package reader is what the verbs that read objects have in common: the flags that say which objects of which server
// are read, and the way from names of types to caches that are synced.
package reader
