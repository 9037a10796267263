package indexers

// Finding makes a diagnostic about what the resource matches, at its place in the file: for programs that look the
// resource up and have something to say about that.
func (r *Resource) Finding(code Code, message, hint string) Diagnostic {
	return r.file.diagnostic(code, r.matchAt.name, message, hint)
}
