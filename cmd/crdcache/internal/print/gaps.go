package print

import (
	"reflect"
)

// gap is where two lists differ: elements of one that stand for elements of the other.
type gap struct{ before, beforeEnd, after, afterEnd int }

// maxTable bounds the effort for long lists: past it, what is between the first and the last difference is one gap.
const maxTable = 1 << 18

// gaps returns where two lists differ, around as many elements as both have in the same order.
func gaps[T any](before, after []T) []gap {
	same := func(i, j int) bool { return reflect.DeepEqual(before[i], after[j]) }
	begin := 0
	for begin < min(len(before), len(after)) && same(begin, begin) {
		begin++
	}
	m, n := len(before), len(after)
	for m > begin && n > begin && same(m-1, n-1) {
		m, n = m-1, n-1
	}
	if m == begin && n == begin {
		return nil
	}
	if (m-begin)*(n-begin) > maxTable {
		return []gap{{begin, m, begin, n}}
	}
	// common[i][j] is how many elements before[i:] and after[j:] have in common.
	common := make([][]int, m-begin+1)
	for i := range common {
		common[i] = make([]int, n-begin+1)
	}
	for i := m - begin - 1; i >= 0; i-- {
		for j := n - begin - 1; j >= 0; j-- {
			if same(begin+i, begin+j) {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var all []gap
	open := gap{begin, begin, begin, begin}
	for i, j := begin, begin; ; {
		matched := i < m && j < n && same(i, j)
		if matched || i == m && j == n {
			if open.beforeEnd, open.afterEnd = i, j; open.before < i || open.after < j {
				all = append(all, open)
			}
			if !matched {
				return all
			}
			i, j = i+1, j+1
			open = gap{i, i, j, j}
			continue
		}
		if j == n || i < m && common[i-begin+1][j-begin] >= common[i-begin][j-begin+1] {
			i++
		} else {
			j++
		}
	}
}
