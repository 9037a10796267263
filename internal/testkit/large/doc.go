// Package large generates realistic objects of 10 KB and more. Measurements of storage and packing depend on
// repetitions between objects.
package large
