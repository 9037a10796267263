package naming

// maxComparedLength limits the work of EditDistance. Longer names are not treated as misspellings.
const maxComparedLength = 128

// EditDistance returns the number of edits (insert, delete, replace, swap neighbors) from a to b, in bytes.
// It returns -1 for more edits than limit.
func EditDistance(a, b string, limit int) int {
	if max(len(a), len(b)) > maxComparedLength || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return -1
	}
	var rows [3][maxComparedLength + 1]uint8
	beforePrevious, previous, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		previous[j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint8(i)
		lowest := row[0]
		for j := 1; j <= len(b); j++ {
			cost := uint8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforePrevious[j-2]+1)
			}
			lowest = min(lowest, row[j])
		}
		if int(lowest) > limit {
			return -1
		}
		beforePrevious, previous, row = previous, row, beforePrevious
	}
	if edits := int(previous[len(b)]); edits <= limit {
		return edits
	}
	return -1
}
