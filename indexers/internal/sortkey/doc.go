// Package sortkey turns typed values into text whose order as bytes is the order of the values, and back.
//
// A key of one value is what [Type.Key] gives. A key of several values is a tuple: each part escaped and
// ended by [AppendPart], so that the keys of all tuples that begin alike begin with the same bytes. No key of
// one value of a type but String is the single byte 0, which stands for a missing value elsewhere.
package sortkey
