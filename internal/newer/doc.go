// Package newer uses methods and fields that client-go and apimachinery have since 0.36, and
// replaces them where a program is built with 0.35.
//
// Go has no build constraint for the version of a dependency. But a selector finds the shallowest field or
// method of a struct. A struct here embeds a Kubernetes type and, one level deeper, a replacement. The
// selector finds the replacement only if the Kubernetes type lacks the field or method. Type inference
// yields its type.
package newer
