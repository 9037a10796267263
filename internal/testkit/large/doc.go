// Package large makes objects of about 10 KB up, as clusters have them: what they repeat of each other, and
// what they do not, is what measurements of storage and of packing depend on.
package large
