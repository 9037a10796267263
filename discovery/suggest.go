package discovery

import (
	"cmp"
	"slices"
	"strings"
)

const maxSuggestions = 5

// suggest returns existing names similar to n, the most similar first.
func (c *Catalog) suggest(n Name) []string {
	type candidate struct {
		text  string
		score int
	}
	scores := map[string]int{} // lowest score of each name
	add := func(text string, score int) {
		if strings.EqualFold(text, n.Raw) {
			return
		}
		if old, ok := scores[text]; !ok || score < old {
			scores[text] = score
		}
	}
	for _, r := range n.Interpretations {
		c.addSimilarNames(r, add)
	}
	candidates := make([]candidate, 0, len(scores))
	for text, score := range scores {
		candidates = append(candidates, candidate{text, score})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.text, b.text))
	})
	var out []string
	for _, cand := range candidates[:min(len(candidates), maxSuggestions)] {
		out = append(out, cand.text)
	}
	return out
}

// addSimilarNames calls add for each existing name similar to an interpretation of the requested name. The
// score of a name is the sum of the edit distances of its resource and its group.
func (c *Catalog) addSimilarNames(r Interpretation, add func(text string, score int)) {
	groupScores := map[string]int{}
	for _, g := range c.groupOrder {
		groupScores[g.Name] = groupDistance(r.Group, g.Name)
	}
	if strings.Contains(r.Resource, "*") {
		for g, score := range groupScores {
			if score < maxGroupDistance && g != "" && r.Group != "" {
				add(r.Resource+"."+g, score)
			}
		}
		return
	}
	requested := strings.ToLower(r.Resource)
	for _, res := range c.resources {
		groupScore := groupScores[res.GVR.Group]
		if !res.Preferred {
			continue
		}
		score := editDistance(requested, res.GVR.Resource)
		score = minScore(score, editDistance(requested, res.Singular))
		score = minScore(score, editDistance(requested, strings.ToLower(res.GVK.Kind)))
		for _, s := range res.ShortNames {
			if len(s) > 3 { // every typo is similar to a two-letter name
				score = minScore(score, editDistance(requested, s))
			}
		}
		if score == 0 || score > 0 && groupScore < maxGroupDistance {
			add(res.GVR.GroupResource().String(), score+groupScore)
		}
	}
	if r.Group != "" {
		return
	}
	for category := range c.byCategory {
		if score := editDistance(requested, category); score >= 0 {
			add(category, score)
		}
	}
}

// maxGroupDistance is the score of a group that is not similar. A matching resource name in another group is
// suggested after all others.
const maxGroupDistance = 1000

func groupDistance(requested, group string) int {
	if requested == "" || requested == group {
		return 0
	}
	if d := editDistance(requested, group); d >= 0 {
		return d
	}
	return maxGroupDistance
}

// minScore returns the smaller of two scores where -1 means none.
func minScore(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// editDistance returns the number of edits (insert, delete, replace, swap neighbors) from requested to name.
// It returns -1 for more edits than a third of the longer name. One edit is always allowed, so that
// two-letter names can match. A prefix of at least three letters counts as one edit.
func editDistance(requested, name string) int {
	if len(requested) >= 3 && strings.HasPrefix(name, requested) {
		if requested == name {
			return 0
		}
		return 1
	}
	limit := max(1, max(len(requested), len(name))/3)
	if len(requested)-len(name) > limit || len(name)-len(requested) > limit {
		return -1
	}
	// Most names fit these arrays, which avoids allocations.
	var buffers [3][64]int16
	beforePrevious, previous, row := buffers[0][:], buffers[1][:], buffers[2][:]
	if len(name) >= len(row) {
		beforePrevious, previous, row = make([]int16, len(name)+1), make([]int16,
			len(name)+1), make([]int16, len(name)+1)
	}
	for j := range len(name) + 1 {
		previous[j] = int16(j)
	}
	for i := 1; i <= len(requested); i++ {
		row[0] = int16(i)
		lowest := i
		for j := 1; j <= len(name); j++ {
			cost := int16(1)
			if requested[i-1] == name[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && requested[i-1] == name[j-2] && requested[i-2] == name[j-1] {
				row[j] = min(row[j], beforePrevious[j-2]+1)
			}
			lowest = min(lowest, int(row[j]))
		}
		if lowest > limit {
			return -1
		}
		beforePrevious, previous, row = previous, row, beforePrevious
	}
	if edits := int(previous[len(name)]); edits <= limit {
		return edits
	}
	return -1
}
