package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// HasMember says whether a static member with this id is in the group now. One that
// died is there until its session has timed out.
func (a *Admin) HasMember(ctx context.Context, group, instanceID string) (bool, error) {
	groups, err := Bounded(ctx, func() ([]*sarama.GroupDescription, error) { return a.admin.DescribeConsumerGroups([]string{group}) }, nil)
	if err != nil {
		return false, fmt.Errorf("asking for the members of group %s: %w", group, err)
	}
	for _, g := range groups {
		switch {
		case errors.Is(g.Err, sarama.ErrGroupIDNotFound):
		case !errors.Is(g.Err, sarama.ErrNoError):
			_ = a.client.RefreshCoordinator(group) // for the next try; this one has failed
			return false, fmt.Errorf("asking for the members of group %s: %w", group, g.Err)
		}
		for _, m := range g.Members {
			if m.GroupInstanceId != nil && *m.GroupInstanceId == instanceID {
				return true, nil
			}
		}
	}
	return false, nil
}
