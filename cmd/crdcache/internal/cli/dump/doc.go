// Package dump is the verb dump: sync types through informers, then print what the caches hold.
package dump
