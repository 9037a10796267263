// Package follow prints the objects of types and then their changes. It implements the verb watch and the
// flag --watch of dump.
//
// The command resolves type names again while it runs. Types that are installed later and match a wildcard, a
// category or a name are added. Removed types are reported.
package follow
