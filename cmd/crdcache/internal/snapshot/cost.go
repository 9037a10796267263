package snapshot

// The maximum memory of a decoded index by its text, including slices and maps that grow during decoding.
const (
	// indexTypeCost is the memory of a type, indexObjectCost of another JSON object, such as a block, and
	// indexValueCost of any other value. indexTextCost is the memory per byte of text.
	indexTypeCost   = 8 << 10
	indexObjectCost = 1 << 10
	indexValueCost  = 256
	indexTextCost   = 4
	// maxMemoryPerByte is the memory of the index per byte of the file.
	maxMemoryPerByte = 1024
	// indexBase is the memory that every index may use: enough for 4,000 types.
	indexBase = 32 << 20
)

// The nesting depths of values in the JSON index of a snapshot.
const (
	depthTypes     = 3 // the elements of "types"
	depthDocuments = 3 // only the names of the documents in "server" are decoded, not their content
)

// indexMemory returns the maximum memory in bytes for decoding an index. It does not allocate, and accepts
// invalid JSON.
func indexMemory(text []byte) uint64 {
	cost := uint64(len(text)) * indexTextCost
	depth, inServer := 0, false
	for i := 0; i < len(text); i++ {
		isCounted := !inServer || depth <= depthDocuments
		switch text[i] {
		case '"':
			end := stringEnd(text, i+1)
			if depth == 1 {
				inServer = string(text[i:end]) == `"server"` // a key, or a string before the next key
			}
			i = end - 1
		case '{', '[':
			depth++
			switch {
			case !isCounted:
			case text[i] == '{' && depth <= depthTypes:
				cost += indexTypeCost
			case text[i] == '{':
				cost += indexObjectCost
			default:
				cost += indexValueCost
			}
		case '}', ']':
			depth--
		case ',':
			if isCounted {
				cost += indexValueCost
			}
		}
	}
	return cost
}

// stringEnd returns the index after the JSON string that contains the byte at start.
func stringEnd(text []byte, start int) int {
	for ; start < len(text); start++ {
		switch text[start] {
		case '\\':
			start++
		case '"':
			return start + 1
		}
	}
	return len(text)
}
