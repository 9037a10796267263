// Package newer uses methods and fields that client-go and apimachinery have since 0.36, and
// replaces them where a program is built with 0.35.
//
// Go has no build constraint for the version of a dependency. But a selector finds the shallowest field or
// method of a struct: a struct embeds the type of Kubernetes and, one level deeper, a replacement. The
// selector means the replacement only if Kubernetes has none, and type inference yields its type.
package newer
