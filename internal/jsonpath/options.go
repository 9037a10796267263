package jsonpath

// Dialect determines how a quoted key with dots is read. The dialects are otherwise equal.
type Dialect int

const (
	// Literal reads ['a.b'] as the single key "a.b", like CEL and RFC 9535. It is the default.
	Literal Dialect = iota
	// Kubectl reads ['a.b'] as key a and below it key b, like kubectl; ['a\.b'] is a single key.
	Kubectl
)

// String returns the name in config files: "literal" or "kubectl".
func (d Dialect) String() string {
	if d == Kubectl {
		return "kubectl"
	}
	return "literal"
}

// Option configures [Compile] and [CompileFilter].
type Option func(*compileOptions)

type compileOptions struct {
	dialect Dialect
}

// WithDialect selects the dialect. Default: [Literal].
func WithDialect(d Dialect) Option {
	return func(c *compileOptions) { c.dialect = d }
}

func newConfig(options []Option) compileOptions {
	var c compileOptions
	for _, o := range options {
		o(&c)
	}
	return c
}
