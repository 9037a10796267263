package snapshot

// The maximum memory of a decoded index by its text, including slices and maps that grow during decoding.
const (
	// indexObjectCost is the memory of a JSON object, such as a type or a block, and indexValueCost that of
	// another value. indexTextCost is the memory per byte of text.
	indexObjectCost = 4 << 10
	indexValueCost  = 256
	indexTextCost   = 4
	// maxMemoryPerByte is the memory of the index per byte of the file.
	maxMemoryPerByte = 1024
	// indexBase is the memory that every index may use.
	indexBase = 32 << 20
)

// indexMemory returns the maximum memory in bytes for decoding an index. It does not allocate, and accepts
// invalid JSON.
func indexMemory(text []byte) uint64 {
	cost, inString := uint64(len(text))*indexTextCost, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			cost += indexObjectCost
		case c == '[' || c == ',':
			cost += indexValueCost
		}
	}
	return cost
}
