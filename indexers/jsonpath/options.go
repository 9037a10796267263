package jsonpath

// Dialect selects how a quoted key that contains dots is read. Everything else is the same in all
// dialects.
type Dialect int

const (
	// Literal reads ['a.b'] as the one key "a.b", as CEL and RFC 9535 do. It is the default.
	Literal Dialect = iota
	// Kubectl reads ['a.b'] as the key a and below it the key b, as kubectl does; ['a\.b'] is the
	// one key there.
	Kubectl
)

// String names the dialect as a configuration file does: "literal" or "kubectl".
func (d Dialect) String() string {
	if d == Kubectl {
		return "kubectl"
	}
	return "literal"
}

// Option adjusts [Compile] and [CompileFilter].
type Option func(*config)

type config struct {
	dialect Dialect
}

// WithDialect selects the dialect; the default is [Literal].
func WithDialect(d Dialect) Option {
	return func(c *config) { c.dialect = d }
}

func newConfig(options []Option) config {
	var c config
	for _, o := range options {
		o(&c)
	}
	return c
}
