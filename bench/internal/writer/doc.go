// Package writer changes objects at a steady rate, or as fast as it can, and remembers when, so that it can be told how long a cache
// took to notice.
package writer
