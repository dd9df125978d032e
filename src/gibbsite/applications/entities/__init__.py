"""Named entities in text: who, where and which organisation, by conditional random fields."""
