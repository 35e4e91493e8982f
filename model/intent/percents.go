package intent

// Percents are weights as percents that sum up to 100, by the largest remainder, as NICs have them; no weight that is not 0
// becomes 0.
func Percents(weight [8]int) [8]int {
	sum := 0
	for _, w := range weight {
		sum += w
	}
	if sum == 0 || sum == 100 {
		return weight
	}
	var share [8]int
	left := 100
	for i, w := range weight {
		if w > 0 {
			share[i] = max(w*100/sum, 1)
			left -= share[i]
		}
	}
	for ; left != 0; left -= sign(left) {
		best := -1 // who is farthest from what it should have, in the direction of what is left
		for i, w := range weight {
			if w == 0 || left < 0 && share[i] == 1 {
				continue
			}
			if best < 0 || sign(left)*(w*100-share[i]*sum) > sign(left)*(weight[best]*100-share[best]*sum) {
				best = i
			}
		}
		share[best] += sign(left)
	}
	return share
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
