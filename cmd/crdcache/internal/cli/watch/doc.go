// Package watch is the verb watch: stream what changes among the objects of types, or of a query.
package watch
