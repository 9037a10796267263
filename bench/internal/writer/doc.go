// Package writer changes objects at a steady rate and remembers when, so that it can be told how long a cache
// took to notice.
package writer
