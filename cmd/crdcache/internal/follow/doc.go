// Package follow prints the objects of types and then their changes. It implements the verb watch and
// 'dump --watch'.
//
// Type names are resolved again when types change. Types that are installed later are added if they match a
// wildcard, a category or a name. Removed types are reported.
package follow
