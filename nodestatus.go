package viewkeeper

// NodeStatus is what a node says of itself, and how that compares with the rest of the
// fleet: an element of /v1/nodes.
type NodeStatus struct {
	Status
	// Lag is by how many versions the node is behind the highest that is known. It
	// says what it has every few seconds, so that a node that is well has a lag
	// while statements come; Lagging says that it was so for 10 seconds.
	Lag     Version `json:"lag"`
	Lagging bool    `json:"lagging"`
	// DigestDiffers says that the node has other rows than others at its version. Of
	// a minority that is told; where there is no majority, of all.
	DigestDiffers bool `json:"digest_differs"`
	// BaseDiffers says that the node's base is not the owner's.
	BaseDiffers bool `json:"base_differs"`
}

// FleetView is what a comparison of nodes knows beside their statuses; the zero value
// is nothing.
type FleetView struct {
	// Version is the highest that was seen in the table, Before the highest that was
	// known 10 seconds ago.
	Version, Before Version
	// BaseDigest is that of the base which the owner judges over.
	BaseDigest string
}

// CompareNodes compares nodes with each other and with what is known.
func CompareNodes(nodes []Status, known FleetView) []NodeStatus {
	rows := map[Version]map[string]int{} // nodes by version and digest
	highest := known.Version
	for _, s := range nodes {
		highest = max(highest, s.Version)
		if s.Digest == "" || s.Version == 0 {
			continue
		}
		if rows[s.Version] == nil {
			rows[s.Version] = map[string]int{}
		}
		rows[s.Version][s.Digest]++
	}
	out := make([]NodeStatus, 0, len(nodes))
	for _, s := range nodes {
		at := rows[s.Version]
		all := 0
		for _, count := range at {
			all += count
		}
		out = append(out, NodeStatus{
			Status:        s,
			Lag:           highest - s.Version,
			Lagging:       s.Version < known.Before,
			DigestDiffers: s.Digest != "" && len(at) > 1 && 2*at[s.Digest] <= all,
			BaseDiffers:   known.BaseDigest != "" && s.BaseDigest != "" && s.BaseDigest != known.BaseDigest,
		})
	}
	return out
}
