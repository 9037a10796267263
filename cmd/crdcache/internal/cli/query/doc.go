// Package query is the verb query: find objects of a type by indexes, labels and conditions.
package query
