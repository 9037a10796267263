package cli

// The output formats of verbs that print no objects.
const (
	formatText  = "text"
	formatTable = "table"
	formatWide  = "wide"
	formatName  = "name"
	formatJSON  = "json"
	formatYAML  = "yaml"
)
