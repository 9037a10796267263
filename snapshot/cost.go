package snapshot

// What the index takes in memory, at most, by its text. Each number covers the lists that grow while the
// index is decoded.
const (
	// indexTypeCost is for a type, indexObjectCost for another object, such as the place of a block, and
	// indexValueCost for any other value.
	indexTypeCost   = 8 << 10
	indexObjectCost = 1 << 10
	indexValueCost  = 256
	// indexTextCost is for a byte of text.
	indexTextCost = 4
	// indexBase is what each index may take, however small the file is: enough for 4,000 types.
	indexBase = 32 << 20
)

// The depths of the JSON of an index.
const (
	depthTypes     = 3 // the elements of "types"
	depthDocuments = 3 // what is in "server" and deeper is not decoded, but the names of the documents
)

// indexCost returns how many bytes of memory decoding an index takes at most, in one pass that allocates
// nothing. The text need not be JSON.
func indexCost(text []byte) uint64 {
	cost := uint64(len(text)) * indexTextCost
	depth, server := 0, false
	for i := 0; i < len(text); i++ {
		counts := !server || depth <= depthDocuments
		switch text[i] {
		case '"':
			end := stringEnd(text, i+1)
			if depth == 1 {
				server = string(text[i:end]) == `"server"` // a key, or a text before the next key
			}
			i = end - 1
		case '{', '[':
			depth++
			switch {
			case !counts:
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
			if counts {
				cost += indexValueCost
			}
		}
	}
	return cost
}

// stringEnd returns the index behind a string whose text begins at i.
func stringEnd(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
