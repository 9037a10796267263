// Package stats is the verb stats: what caching a type costs, and how the values of its indexes are distributed.
package stats
