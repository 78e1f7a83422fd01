from mine import timeline

timeline.Timeline(1)
