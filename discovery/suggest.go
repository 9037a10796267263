package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
)

const maxSuggestions = 5

// suggest returns existing names similar to n, the most similar first.
func (c *Catalog) suggest(n Name) []string {
	scores := map[string]int{} // lowest score of each name
	add := func(text string, score int) {
		if old, ok := scores[text]; !strings.EqualFold(text, n.Raw) && (!ok || score < old) {
			scores[text] = score
		}
	}
	for _, r := range n.Interpretations {
		c.addSimilarNames(r, add)
	}
	nearest := slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[a], scores[b]), cmp.Compare(a, b))
	})
	return nearest[:min(len(nearest), maxSuggestions)]
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
	return naming.EditDistance(requested, name, max(1, max(len(requested), len(name))/3))
}
