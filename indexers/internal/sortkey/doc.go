// Package sortkey encodes typed values as text that sorts as bytes like the values, and decodes it.
//
// [Type.Key] encodes one value. Several values are encoded as a tuple by [AppendPart], which escapes and
// terminates each part, so that tuples with equal first parts have a common prefix. Only keys of type String
// can be the single byte 0, which marks missing values elsewhere.
package sortkey
